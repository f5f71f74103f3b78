"""What a trained model is worth: scores computed on the CPU in float64."""
