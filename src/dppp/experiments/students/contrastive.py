"""Features from contrastive learning on the public pictures (SimCLR; Chen et al. 2020), in torch.

A small network is taught that two distorted copies of a picture are alike and those of others are
not. Tried beside the patches of `dppp.learning`. Which distortions keep a digit a digit (turns up
to 17°, shears, shifts) is knowledge about digits, which a table does not bring. Needs torch.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

EPOCHS = 12
_BATCH = 250
_TEMPERATURE = 0.2


def contrastive_features(
    images: NDArray[np.float64], pool: int, *, seed: int = 0, epochs: int = EPOCHS
) -> NDArray[np.float64]:
    """Unit vectors for all pictures of 28×28, by a network that saw the first `pool` of them."""
    torch.manual_seed(seed)
    pictures = torch.from_numpy(images.astype(np.float32)).reshape(-1, 1, 28, 28)
    network, head = _encoder(), nn.Sequential(nn.ReLU(), nn.Linear(128, 64))
    weights = [*network.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(weights, lr=2e-3)
    steps = epochs * -(-pool // _BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for _ in range(epochs):
        for rows in torch.randperm(pool).split(_BATCH):
            batch = pictures[rows]
            both = torch.cat([_distort(batch), _distort(batch)])
            loss = _contrast(functional.normalize(head(network(both)), dim=1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    network.eval()
    with torch.no_grad():
        found = torch.cat([network(chunk) for chunk in pictures.split(1000)])
    features: NDArray[np.float64] = functional.normalize(found, dim=1).numpy().astype(np.float64)
    return features


def _encoder() -> nn.Module:
    layers: list[nn.Module] = []
    for before, after, width, stride in ((1, 16, 5, 2), (16, 32, 3, 2), (32, 32, 3, 1)):
        layers += [nn.Conv2d(before, after, width, stride=stride, padding=width // 2)]
        layers += [nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(
        *layers, nn.MaxPool2d(2, ceil_mode=True), nn.Flatten(), nn.Linear(512, 128)
    )


def _distort(pictures: torch.Tensor) -> torch.Tensor:
    count = len(pictures)
    angle, shear = (torch.rand(2, count) - 0.5) * 0.6
    size = torch.exp((torch.rand(2, count) - 0.5) * 0.4)
    shift = (torch.rand(count, 2, 1) - 0.5) * 0.3
    across = torch.stack([angle.cos() * size[0], shear - angle.sin() * size[1]], dim=1)
    down = torch.stack([angle.sin() * size[0], angle.cos() * size[1]], dim=1)
    matrices = torch.cat([torch.stack([across, down], dim=1), shift], dim=2)
    grid = functional.affine_grid(matrices, list(pictures.shape), align_corners=False)
    return functional.grid_sample(pictures, grid, align_corners=False)


def _contrast(codes: torch.Tensor) -> torch.Tensor:
    count = len(codes) // 2
    alike = codes @ codes.T / _TEMPERATURE
    alike = alike.masked_fill(torch.eye(2 * count, dtype=torch.bool), -torch.inf)
    partner = torch.cat([torch.arange(count, 2 * count), torch.arange(count)])
    return functional.cross_entropy(alike, partner)
