"""Committed digests: does portable arithmetic on this machine give the same bits as elsewhere?"""
