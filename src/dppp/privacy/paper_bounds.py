"""The paper's own formulas for the noise, for comparison and reproduction.

Calibration `paper` uses these and reports beside the promise what they really deliver.
"""

import math

from scipy import optimize, special


def theorem_1_tosses(epsilon: float, delta: float) -> int:
    """Total tosses by Theorem 1: n ≥ 2 ((2 + ε)/ε)² ln(2/δ)."""
    return math.ceil(2 * ((2 + epsilon) / epsilon) ** 2 * math.log(2 / delta))


def dwork_2006_tosses(epsilon: float, delta: float) -> int:
    """Total tosses by Dwork et al. 2006, which Theorem 1 improves on: n ≥ 64 ln(2/δ)/ε²."""
    return math.ceil(64 * math.log(2 / delta) / epsilon**2)


def analytic_gaussian_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """The smallest σ that satisfies Equation 5 (Theorem 2; Balle and Wang 2018), rounded up."""

    def excess(log_sigma: float) -> float:
        return _log_gaussian_delta(epsilon, sensitivity / math.exp(log_sigma)) - math.log(delta)

    low = high = math.log(sensitivity)
    while excess(low) < 0:
        low -= 1
    while excess(high) > 0:
        high += 1
    return math.exp(float(optimize.brentq(excess, low, high, xtol=1e-14))) * (1 + 1e-13)


def _log_gaussian_delta(epsilon: float, signal: float) -> float:
    """Logarithm of Φ(s/2 - ε/s) - e^ε Φ(-s/2 - ε/s), with s the sensitivity over σ."""
    first = float(special.log_ndtr(signal / 2 - epsilon / signal))
    second = epsilon + float(special.log_ndtr(-signal / 2 - epsilon / signal))
    return first + math.log1p(-math.exp(min(second - first, -1e-16)))
