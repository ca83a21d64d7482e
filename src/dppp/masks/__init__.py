"""Ballots that need no dealer: ring masks whose short secrets the teachers deal to each other.

`parameters` fixes the ring of a task and states its security; a teacher draws secret and errors
with `gaussian`, masks with `ring`, writes its counts and masks with `packing`, and deals its secret
with `sharing`. Everything here is a function of its arguments: randomness is handed in as bytes.

After packed secret sharing (Franklin, Yung 1992) and sums under LWE masks (Stevens et al. 2021;
ACORN 2022; LERNA 2023; Willow 2025). Nobody outside this project has reviewed it.
"""
