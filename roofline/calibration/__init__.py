"""Fitting the constants of kernels to measured step times."""
