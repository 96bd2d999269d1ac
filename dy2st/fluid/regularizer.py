"""1.x's names of weight decays."""

from dy2st.regularizer import L1Decay, L2Decay

L1DecayRegularizer, L2DecayRegularizer = L1Decay, L2Decay

__all__ = ["L1Decay", "L1DecayRegularizer", "L2Decay", "L2DecayRegularizer"]
