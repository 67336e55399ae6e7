"""Runs benchmarks: python -m benchmarks [NAME ...]; without names, all but the long ones."""

import sys

from . import (
    attacks,
    brackets,
    certificate,
    estimators,
    estimators_growth,
    estimators_speed,
    exact_radii,
    flow_gradients,
    importing,
    input_margins,
    interpolation,
    label_errors,
    label_retraining,
    margin_ascent,
    measuring,
    radii_peers,
    random_features,
    training_step,
    two_layer,
    variation_norm,
    watching,
    zoo,
)

QUICK = {
    "training_step": training_step,
    "measuring": measuring,
    "importing": importing,
    "variation_norm": variation_norm,
    "flow_gradients": flow_gradients,
}
LONG = {
    "attacks": attacks,
    "brackets": brackets,
    "certificate": certificate,
    "estimators": estimators,
    "estimators_growth": estimators_growth,
    "estimators_speed": estimators_speed,
    "exact_radii": exact_radii,
    "input_margins": input_margins,
    "interpolation": interpolation,
    "label_errors": label_errors,
    "label_retraining": label_retraining,
    "margin_ascent": margin_ascent,
    "radii_peers": radii_peers,
    "random_features": random_features,
    "two_layer": two_layer,
    "watching": watching,
    "zoo": zoo,
}

for name in sys.argv[1:] or QUICK:
    (QUICK | LONG)[name].main()
