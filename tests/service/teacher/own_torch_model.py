"""A model class in an operator's own package; the tests import it by name."""

import torch


class TwoLayers(torch.nn.Module):
    def __init__(self, *, hidden: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(2, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 2)
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.layers(rows)
