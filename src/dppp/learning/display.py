"""What a notebook shows above scikit-learn's diagram: the promise, what is spent, what is left."""

from collections.abc import Mapping
from html import escape
from typing import Any


def budget_html(private: Any, spent: Mapping[str, float] | None, simulated: str | None) -> str:
    """A table of the budget; `spent` is None before `fit`."""
    rows = [
        ("promised", f"ε = {private.epsilon}, δ = {private.delta} for {private.queries} queries"),
        ("for one", str(private.unit)),
    ]
    if spent is None:
        rows.append(("spent", "nothing: not fitted"))
    else:
        rows.append(("spent", f"ε = {spent['epsilon']:.3g} on {spent['queries']} answers"))
        rows.append(("left", f"{spent['left']} of {private.queries} queries"))
    if simulated is not None:
        rows.append(("cryptography", simulated))
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f'<table class="dppp-budget"><caption>Privacy budget</caption>{cells}</table>'
