"""Derivatives over the tape of eager mode: reverse, forward, Taylor, batched.

Programs are differentiated in autodiff/.
"""
