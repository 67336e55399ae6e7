"""The engine of the claims: what a claim is, its instances, the ledger of all of them."""
