"""Refit in closed form: the remaining columns of an output projection are fitted to its outputs before the removal.

A block adds y = W x + b to the residual stream. Heads or neurons are removed by dropping columns of W. The remaining columns S
are fitted, with a ridge penalty towards their old values, so that W' x_S + b' approximates the teacher's y at the same tokens
(COMPRESS, section 1; the closed form is that of optimal brain surgeon on the kept set, Hassibi and Stork, 1993):

    W' = W_S + (T - W_S K) (K + lambda I)^-1,   b' = mean(y) - W' mean(x_S)

with K = E[(x_S - mean) (x_S - mean)^T] and T = E[(y - mean) (x_S - mean)^T] over calibration tokens, and lambda = ridge times
the mean of K's diagonal. Without a bias, K and T are not centred. The squared error on tokens that the fit has not seen
determines the ridge, and whether more than the bias is fitted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from axformer.evaluation.multiply import transposed_product

RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
"""Ridges to choose from on tokens that the fit has not seen; by COMPRESS, 1e-2 works well with many tokens."""


@dataclass
class Sums:
    """Sums over tokens of a projection's input x and its target output y, both relative to a fixed origin near their means.

    No tokens are stored. Products within a batch are computed in the precision of the inputs, and summed in float64.
    """

    count: int
    x0: Tensor
    """The origin of x, shape (columns,)."""
    y0: Tensor
    """The origin of y, shape (outputs,)."""
    x: Tensor
    """Sum of x, shape (columns,)."""
    y: Tensor
    """Sum of y, shape (outputs,)."""
    xx: Tensor
    """Sum of x x^T, shape (columns, columns)."""
    yx: Tensor
    """Sum of y x^T, shape (outputs, columns)."""
    yy: Tensor
    """Sum of |y|^2, a scalar."""

    @classmethod
    def around(cls, x0: Tensor, y0: Tensor) -> "Sums":
        """Sums over no tokens.

        Args:
            x0: about the mean of x, shape (columns,).
            y0: about the mean of y, shape (outputs,).
        """

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.float64, device=x0.device)

        columns, outputs = len(x0), len(y0)
        sums = zeros(columns), zeros(outputs), zeros(columns, columns), zeros(outputs, columns), zeros()
        return cls(0, x0, y0, *sums)

    def add(self, x: Tensor, y: Tensor) -> None:
        """Add some tokens, shapes (tokens, columns) and (tokens, outputs)."""
        self.count += len(x)
        x, y = x - self.x0.to(x.dtype), y - self.y0.to(y.dtype)
        self.x += x.double().sum(dim=0)
        self.y += y.double().sum(dim=0)
        self.xx += transposed_product(x, x)
        self.yx += transposed_product(y, x)
        self.yy += y.double().square().sum()

    def __add__(self, other: "Sums") -> "Sums":
        """Sums over the tokens of both, which must have the same origin."""
        pairs = ((self.x, other.x), (self.y, other.y), (self.xx, other.xx), (self.yx, other.yx), (self.yy, other.yy))
        return Sums(self.count + other.count, self.x0, self.y0, *(one + more for one, more in pairs))

    def of(self, columns: Tensor) -> "Sums":
        """The sums for some columns of x."""
        xx, yx = self.xx[columns][:, columns], self.yx[:, columns]
        return Sums(self.count, self.x0[columns], self.y0, self.x[columns], self.y, xx, yx, self.yy)

    @property
    def means(self) -> tuple[Tensor, Tensor]:
        """The means of x and y."""
        return self.x0.double() + self.x / self.count, self.y0.double() + self.y / self.count

    @property
    def covariances(self) -> tuple[Tensor, Tensor, float]:
        """Covariance of x, shape (columns, columns), of y with x, shape (outputs, columns), and the variance of y."""
        x, y = self.x / self.count, self.y / self.count
        variance = self.yy / self.count - y.square().sum()
        return self.xx / self.count - torch.outer(x, x), self.yx / self.count - torch.outer(y, x), float(variance)


@dataclass(frozen=True)
class Fit:
    """The weights of an output projection after a refit."""

    weight: Tensor
    """Shape (outputs, columns), float64."""
    bias: Tensor | None
    """Shape (outputs,), float64; None if the projection has no bias."""
    ridge: float | None
    """The chosen ridge; None if only the bias was fitted."""


def refit(weight: Tensor, fitting: Sums, checking: Sums, *, has_bias: bool, ridges: Sequence[float] = RIDGES) -> Fit:
    """Fit the remaining columns.

    Args:
        weight: the remaining columns before the fit, shape (outputs, columns).
        fitting: sums over the tokens that candidates are fitted to.
        checking: sums over other tokens, which choose between the candidates. The chosen ridge is then fitted to all tokens.
        has_bias: whether the projection has a bias.
        ridges: the ridges to try.
    """
    old = weight.double()
    everything = fitting + checking
    candidates = [None, *ridges] if old.shape[1] and fitting.count and checking.count else [None]
    if len(candidates) == 1:
        return next(solved(old, everything, candidates, has_bias=has_bias))
    moments = checking.means, checking.covariances
    errors = [error_of(fit, *moments) for fit in solved(old, fitting, candidates, has_bias=has_bias)]
    best = candidates[min(range(len(candidates)), key=errors.__getitem__)]
    return next(solved(old, everything, [best], has_bias=has_bias))


def solved(old: Tensor, sums: Sums, ridges: Sequence[float | None], *, has_bias: bool) -> Iterator[Fit]:
    """The fit with each ridge; None fits the bias alone, which is always safe."""
    x, y = sums.means
    if any(ridge is not None for ridge in ridges):
        second, cross, _ = sums.covariances
        if not has_bias:  # moments about 0, since no constant can be added
            second, cross = second + torch.outer(x, x), cross + torch.outer(y, x)
        missing = (cross - old @ second).T
    for ridge in ridges:
        new = old
        if ridge is not None:
            damped = second.clone()
            damped.diagonal().add_(damping(second, ridge))
            new = old + torch.cholesky_solve(missing, torch.linalg.cholesky(damped)).T
        yield Fit(new, y - new @ x if has_bias else None, ridge)


def damping(second: Tensor, ridge: float) -> float:
    """Lambda: ``ridge`` times the mean of the diagonal, and above 0 even if all inputs are 0."""
    return max(ridge * float(second.diagonal().mean()), 1e-12)


def error_of(fit: Fit, means: tuple[Tensor, Tensor], covariances: tuple[Tensor, Tensor, float]) -> float:
    """The mean of |y - W x - b|^2 over the tokens of some sums."""
    (x, y), (second, cross, variance), weight = means, covariances, fit.weight
    spread = variance - 2 * float((weight * cross).sum()) + float(((weight @ second) * weight).sum())
    offset = y - weight @ x - (0 if fit.bias is None else fit.bias)
    return spread + float(offset.square().sum())
