"""The two papers' names, as their claims cite them."""

W18, W19 = "Wei et al. 2018", "Wei et al. 2019"
