"""What the knobs of all methods have in common whose trials hold whole plans."""

from typing import ClassVar

from axformer.config.common import RunConfig
from axformer.errors import ConfigError


class PlansConfig(RunConfig):
    """The knobs of a method that yields one model after another, measures them all, and chooses at the end."""

    called: ClassVar[str]
    """The name of the method for users."""

    def check(self) -> None:
        super().check()
        if self.evaluate_in != "float32":
            raise ConfigError(
                f"evaluate_in={self.evaluate_in}: {self.called} measures in float32; take the form onnx_int8, or "
                "method=axformer"
            )

    @property
    def measures_path(self) -> bool:
        return True

    @property
    def expects_cost(self) -> bool:
        return self.within_points is None
