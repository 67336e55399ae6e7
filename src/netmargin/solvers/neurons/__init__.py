"""The best two-layer net, min sum_j |A_j| + loss(F) over neurons w_j of length 1 with outputs A_j
and F = sum_j phi(w_j . z) A_j: its activations, its losses, and the search that slides neurons.
"""
