"""How many replicas and primaries a load needs, by costs that were measured."""

from .coefficients import (
    COST_NAMES,
    FILE,
    Coefficients,
    CpuCosts,
    CpuMeasurement,
    FleetCount,
    Machine,
    MeasuredLoad,
    MemoryCheck,
    RedisMemory,
    ReplicaMemory,
    cost_of,
    read_coefficients,
)
from .plan import Carried, Demand, Plan, ServerNeed, make_plan, one_carries

__all__ = [
    "COST_NAMES",
    "FILE",
    "Carried",
    "Coefficients",
    "CpuCosts",
    "CpuMeasurement",
    "Demand",
    "FleetCount",
    "Machine",
    "MeasuredLoad",
    "MemoryCheck",
    "Plan",
    "RedisMemory",
    "ReplicaMemory",
    "ServerNeed",
    "cost_of",
    "make_plan",
    "one_carries",
    "read_coefficients",
]
