"""The vocabulary: what engines tell, what costing makes of it, and the tables that keep it."""

from .batch import Batch, Progress
from .ledger import LEDGER, MINUTE_NS, Account, LedgerLine
from .rate import RATES, Rate
from .request import REQUESTS, FinishReason, Request, Tier
from .run import RUNS, Clock, Run
from .sink import Sink
from .step import SHARES, STEPS, Basis, Phase, Share, Step
from .table import Column, Table

EVENT_TABLES = (RUNS, STEPS, SHARES, REQUESTS, LEDGER)

__all__ = [
    "EVENT_TABLES",
    "LEDGER",
    "MINUTE_NS",
    "RATES",
    "REQUESTS",
    "RUNS",
    "SHARES",
    "STEPS",
    "Account",
    "Basis",
    "Batch",
    "Clock",
    "Column",
    "FinishReason",
    "LedgerLine",
    "Phase",
    "Progress",
    "Rate",
    "Request",
    "Run",
    "Share",
    "Sink",
    "Step",
    "Table",
    "Tier",
]
