"""Derivatives: from a Program to the Program that pulls cotangents back or pushes tangents forward."""
