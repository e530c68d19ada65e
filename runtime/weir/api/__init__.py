"""The configuration and the reports that the runtime, the operator and the user share.

Settings of a job as pydantic models, and nothing that acts on them. This package imports neither
the core nor Spark, so that the operator can read a job's configuration without either.
"""

from weir.api.checkpointing_config import CheckpointingConfig, CheckpointingMode, Retention
from weir.api.config import JobConfig, load_config
from weir.api.recovery_config import ClaimMode, RecoveryConfig
from weir.api.restart_config import RestartConfig, RestartType
from weir.api.state_config import StateBackend, StateConfig

__all__ = [
    "CheckpointingConfig",
    "CheckpointingMode",
    "ClaimMode",
    "JobConfig",
    "RecoveryConfig",
    "RestartConfig",
    "RestartType",
    "Retention",
    "StateBackend",
    "StateConfig",
    "load_config",
]
