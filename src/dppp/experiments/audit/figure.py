"""The trade-off of the two errors: what the adversary reached, and what the certificate allows."""

from pathlib import Path

import numpy as np

from dppp.experiments.audit.promise import PromiseAudit
from dppp.experiments.figures import BLUE, VERMILION, new_figure, save
from dppp.privacy.accounting import delta_curve
from dppp.privacy.pmf import Floats


def draw_trade_off(audit: PromiseAudit, path: Path) -> Path:
    """Chance of a missed move against chance of a false one, at every threshold."""
    false_alarms = np.geomspace(1e-7, 1, 400)
    curve = audit.attack.curve
    alarms = curve.moved / max(1, curve.moved_trials)
    misses = 1 - curve.stayed / max(1, curve.stayed_trials)
    promise = audit.certificate.promise
    one = _least_misses(false_alarms, np.array([promise.epsilon]), np.array([promise.delta]))
    best = _least_misses(false_alarms, *_certified_curve(audit))
    figure, axes = new_figure(11, 4.5, columns=2)
    words = f"promised: ε = {promise.epsilon:g}, δ = {promise.delta:g}"
    axes[0].plot(false_alarms, one, "k--", linewidth=1, label=words)
    axes[0].plot(false_alarms, best, color=BLUE, label="certified, at every ε")
    axes[0].plot(alarms, misses, ".", color=VERMILION, markersize=4, label="measured")
    axes[0].set_ylabel("world 0 not named in world 0 (chance)")
    # The same where few are named, which is where a small δ is decided.
    axes[1].loglog(false_alarms, 1 - one, "k--", linewidth=1)
    axes[1].loglog(false_alarms, 1 - best, color=BLUE)
    axes[1].loglog(alarms, 1 - misses, ".", color=VERMILION, markersize=4)
    axes[1].set_xlim(1e-7, 1)
    axes[1].set_ylim(1e-7, 1.5)
    axes[1].set_ylabel("world 0 named in world 0 (chance)")
    for place in axes:
        place.set_xlabel("world 0 named in world 1 (chance)")
        place.grid(alpha=0.3)
    axes[0].legend(fontsize="small")
    lower, confidence = audit.attack.epsilon_lower, audit.attack.confidence
    axes[0].set_title(
        f"ε is at least {lower:.3f} ({100 * confidence:g} % confidence, "
        f"{audit.attack.trials:,} trials)",
        loc="left",
        fontsize="medium",
    )
    return save(figure, path)


def _certified_curve(audit: PromiseAudit) -> tuple[Floats, Floats]:
    """δ(ε) of the noise, at many ε."""
    promise = audit.certificate.promise
    epsilons = np.linspace(promise.epsilon / 100, 1.5 * promise.epsilon, 100)
    return epsilons, np.array(delta_curve([audit.spending], epsilons.tolist()))


def _least_misses(false_alarms: Floats, epsilons: Floats, deltas: Floats) -> Floats:
    """Each (ε, δ) allows no point below two lines; their highest is the trade-off curve."""
    growth, gap = np.exp(epsilons)[:, np.newaxis], 1 - deltas[:, np.newaxis]
    lines = np.maximum(gap - growth * false_alarms, (gap - false_alarms) / growth)
    return np.asarray(np.maximum(lines.max(axis=0), 0.0))
