"""Passes that replace operations by simpler ones, or by ones that the backend has better code for."""
