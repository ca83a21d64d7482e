"""Random noise, promises and numbers of teachers for property tests, all in one place."""

from hypothesis import strategies as st

from dppp.privacy.noise import Binomial, DiscreteGaussian, Noise, Polya, Skellam
from dppp.privacy.trust import Trust

shares = st.integers(1, 60)
epsilons = st.floats(0.02, 4.0)
deltas = st.floats(-12, -1.5).map(lambda exponent: 10**exponent)

binomials = st.builds(
    lambda tosses, shares: Binomial(total_tosses=tosses * shares, shares=shares),
    st.integers(1, 200),
    shares,
)
discrete_gaussians = st.builds(DiscreteGaussian, share_sigma=st.floats(0.15, 20), shares=shares)
skellams = st.builds(Skellam, share_variance=st.floats(0.01, 100), shares=shares)
polyas = st.builds(
    Polya, shape=st.floats(0.3, 20), ratio=st.floats(0.05, 0.97), shares=st.integers(1, 60)
)
noises: st.SearchStrategy[Noise] = st.one_of(binomials, discrete_gaussians, skellams, polyas)


@st.composite
def trusts(draw: st.DrawFn) -> Trust:
    teachers = draw(st.integers(4, 300))
    colluders = draw(st.integers(0, teachers // 4))
    dropouts = draw(st.integers(0, teachers // 5))
    return Trust(teachers=teachers, colluders=colluders, dropouts=dropouts)
