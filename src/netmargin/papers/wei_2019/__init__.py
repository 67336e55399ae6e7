"""Wei, Lee, Liu, Ma 2019, *Regularization Matters: Generalization and Optimization of Neural Nets
v.s. their Induced Kernel*.
"""
