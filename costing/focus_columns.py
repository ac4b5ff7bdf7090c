"""The FOCUS columns that Farebox writes: their types, whether null may stand in them, and their allowed values.

Taken from the FinOps Open Cost and Usage Specification, version 1.2 (commit 7296e3146fb9, specification/columns), and
for the split cost allocation columns from version 1.3 (specification/datasets/cost_and_usage, commit 003443d7a487).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

FocusKind = Literal["String", "Decimal", "Date/Time", "JSON"]


class FocusColumn(NamedTuple):
    """One column: its name and type, the version it came with, whether it may be null, and what may stand in it."""

    name: str
    kind: FocusKind
    nullable: bool
    since: str = "1.2"
    allowed: tuple[str, ...] = ()


SERVICE_CATEGORIES = (
    "AI and Machine Learning", "Analytics", "Business Applications", "Compute", "Databases", "Developer Tools",
    "Multicloud", "Identity", "Integration", "Internet of Things", "Management and Governance", "Media", "Migration",
    "Mobile", "Networking", "Security", "Storage", "Web", "Other",
)  # fmt: skip

FOCUS_COLUMNS = (
    FocusColumn("BilledCost", "Decimal", False),
    FocusColumn("BillingAccountId", "String", False),
    FocusColumn("BillingAccountName", "String", True),
    FocusColumn("BillingCurrency", "String", False),
    FocusColumn("BillingPeriodEnd", "Date/Time", False),
    FocusColumn("BillingPeriodStart", "Date/Time", False),
    FocusColumn("ChargeCategory", "String", False, allowed=("Usage", "Purchase", "Tax", "Credit", "Adjustment")),
    FocusColumn("ChargeClass", "String", True, allowed=("Correction",)),
    FocusColumn("ChargeDescription", "String", True),
    FocusColumn("ChargeFrequency", "String", False, allowed=("One-Time", "Recurring", "Usage-Based")),
    FocusColumn("ChargePeriodEnd", "Date/Time", False),
    FocusColumn("ChargePeriodStart", "Date/Time", False),
    FocusColumn("CommitmentDiscountStatus", "String", True, allowed=("Used", "Unused")),
    FocusColumn("ConsumedQuantity", "Decimal", True),
    FocusColumn("ConsumedUnit", "String", True),
    FocusColumn("ContractedCost", "Decimal", False),
    FocusColumn("ContractedUnitPrice", "Decimal", True),
    FocusColumn("EffectiveCost", "Decimal", False),
    FocusColumn("InvoiceId", "String", True),
    FocusColumn("InvoiceIssuerName", "String", False),
    FocusColumn("ListCost", "Decimal", False),
    FocusColumn("ListUnitPrice", "Decimal", True),
    FocusColumn("PricingCategory", "String", True, allowed=("Standard", "Dynamic", "Committed", "Other")),
    FocusColumn("PricingCurrency", "String", True),
    FocusColumn("PricingQuantity", "Decimal", True),
    FocusColumn("PricingUnit", "String", True),
    FocusColumn("ProviderName", "String", False),
    FocusColumn("PublisherName", "String", False),
    FocusColumn("RegionId", "String", True),
    FocusColumn("RegionName", "String", True),
    FocusColumn("ResourceId", "String", True),
    FocusColumn("ResourceName", "String", True),
    FocusColumn("ResourceType", "String", True),
    FocusColumn("ServiceCategory", "String", False, allowed=SERVICE_CATEGORIES),
    FocusColumn("ServiceName", "String", False),
    FocusColumn("ServiceSubcategory", "String", False),
    FocusColumn("SkuId", "String", True),
    FocusColumn("SkuMeter", "String", True),
    FocusColumn("SkuPriceDetails", "JSON", True),
    FocusColumn("SkuPriceId", "String", True),
    FocusColumn("SubAccountId", "String", True),
    FocusColumn("SubAccountName", "String", True),
    FocusColumn("Tags", "JSON", True),
    FocusColumn("AllocatedMethodDetails", "JSON", True, "1.3"),
    FocusColumn("AllocatedMethodId", "String", True, "1.3"),
    FocusColumn("AllocatedResourceId", "String", True, "1.3"),
    FocusColumn("AllocatedResourceName", "String", True, "1.3"),
    FocusColumn("AllocatedTags", "JSON", True, "1.3"),
    FocusColumn("HostProviderName", "String", False, "1.3"),
    FocusColumn("ServiceProviderName", "String", False, "1.3"),
)

CUSTOM_COLUMNS = (
    FocusColumn("x_OriginChargeId", "String", False),
    FocusColumn("x_Account", "String", False),
    FocusColumn("x_EngineId", "String", True),
    FocusColumn("x_TenantId", "String", True),
    FocusColumn("x_Team", "String", True),
    FocusColumn("x_Tier", "String", True),
    FocusColumn("x_Model", "String", True),
    FocusColumn("x_Phase", "String", True),
    FocusColumn("x_Basis", "String", True),
    FocusColumn("x_PromptTokens", "Decimal", False),
    FocusColumn("x_CachedTokens", "Decimal", False),
    FocusColumn("x_OutputTokens", "Decimal", False),
    FocusColumn("x_Requests", "Decimal", False),
)
"""Farebox's own; FOCUS wants such names to begin with x_."""

COLUMNS = (*FOCUS_COLUMNS, *CUSTOM_COLUMNS)
