"""Files as containers: safetensors with checked metadata. What is put into them is the caller's business."""
