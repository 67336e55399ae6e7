"""The engine of the claims: what a claim is, the instances it is examined on, the ledger of all of
them.
"""
