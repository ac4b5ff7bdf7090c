"""The vocabulary: what engines tell, what costing makes of it, and the tables that keep it."""

from .advice import ADVICE, Advice
from .alert import ALERTS, Alert
from .batch import Batch, Progress
from .budget import BUDGET_STATES, BUDGETS, Budget, BudgetState, Standing
from .capacity import CAPACITIES, Capacity
from .change import CHANGES, Change
from .closing import CLOSINGS, Closing
from .decode_run import PART_BITS, DecodeGroup, DecodeRun, DecodeSink
from .gpu_sample import GPU_SAMPLES, GpuSample, GpuState
from .host_sample import HOST_SAMPLES, HostSample
from .interval import INTERVALS, Interval
from .ledger import LEDGER, MINUTE_NS, Account, LedgerLine
from .price import PRICES, TokenPrice
from .rate import RATES, Rate, RateScope
from .request import REQUESTS, FinishReason, Request, Tier
from .run import RUNS, Clock, Run
from .sink import Sink
from .source_state import SOURCE_STATES, SourceStanding, SourceState, newest_states
from .spooled import Spooled
from .step import SHARES, STEPS, Basis, Phase, Share, Step
from .table import Column, Table
from .team import TEAM_RENAMES, TeamRename
from .tenant import API_KEYS, TENANTS, UNKNOWN_TENANT, ApiKey, Tenant, hash_key
from .usage import Usage

EVENT_TABLES = (RUNS, STEPS, SHARES, REQUESTS, LEDGER, INTERVALS, GPU_SAMPLES, HOST_SAMPLES)
SETTING_TABLES = (
    RATES, CAPACITIES, TENANTS, TEAM_RENAMES, API_KEYS, PRICES, BUDGETS, BUDGET_STATES, CLOSINGS, CHANGES,
    SOURCE_STATES, ALERTS, ADVICE,
)  # fmt: skip

__all__ = [
    "ADVICE",
    "ALERTS",
    "API_KEYS",
    "BUDGETS",
    "BUDGET_STATES",
    "CAPACITIES",
    "CHANGES",
    "CLOSINGS",
    "EVENT_TABLES",
    "GPU_SAMPLES",
    "HOST_SAMPLES",
    "INTERVALS",
    "LEDGER",
    "MINUTE_NS",
    "PART_BITS",
    "PRICES",
    "RATES",
    "REQUESTS",
    "RUNS",
    "SETTING_TABLES",
    "SHARES",
    "SOURCE_STATES",
    "STEPS",
    "TEAM_RENAMES",
    "TENANTS",
    "UNKNOWN_TENANT",
    "Account",
    "Advice",
    "Alert",
    "ApiKey",
    "Basis",
    "Batch",
    "Budget",
    "BudgetState",
    "Capacity",
    "Change",
    "Clock",
    "Closing",
    "Column",
    "DecodeGroup",
    "DecodeRun",
    "DecodeSink",
    "FinishReason",
    "GpuSample",
    "GpuState",
    "HostSample",
    "Interval",
    "LedgerLine",
    "Phase",
    "Progress",
    "Rate",
    "RateScope",
    "Request",
    "Run",
    "Share",
    "Sink",
    "SourceStanding",
    "SourceState",
    "Spooled",
    "Standing",
    "Step",
    "Table",
    "TeamRename",
    "Tenant",
    "Tier",
    "TokenPrice",
    "Usage",
    "hash_key",
    "newest_states",
]
