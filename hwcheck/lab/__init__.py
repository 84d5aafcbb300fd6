"""Simulated nodes."""
