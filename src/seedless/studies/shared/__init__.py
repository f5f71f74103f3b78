"""What published studies are made of: their arms, image sets, external datasets, measurements."""
