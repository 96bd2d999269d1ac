"""Layers by subject; `dy2st.nn` has all their names."""
