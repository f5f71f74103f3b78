"""What published studies share: their arms, image sets, external datasets and measurements."""
