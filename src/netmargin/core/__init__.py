"""Shared machinery that knows no theorem: arguments, data, nets, gradients, files, progress,
interrupts, numerical minimizers.
"""
