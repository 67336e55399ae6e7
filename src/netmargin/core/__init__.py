"""What every subject needs and no theorem knows: data, nets, gradients, files, progress,
interrupts, numerical minimizers.
"""
