"""Test inputs and committed digests: is this machine the same as the others?"""
