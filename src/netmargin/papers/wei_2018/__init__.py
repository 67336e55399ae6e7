"""Wei, Lee, Liu, Ma 2018, *On the Margin Theory of Feedforward Neural Networks*, Section 5."""
