"""The samples that nets and tangent kernels need on the hypercube, in few dimensions and draws."""

import pytest

from benchmarks.hypercube_samples import fit_exponents


@pytest.mark.nightly
def test_the_kernel_needs_a_higher_power_of_the_dimension_than_the_net():
    net, kernel = fit_exponents(dimensions=(10, 14, 20), draws=(4, 2))
    assert 0.7 < net.value < 1.4  # three dimensions: wider than the benchmark's windows
    assert 1.55 < kernel.value < 2.1
    assert kernel.value - net.value > 0.4
