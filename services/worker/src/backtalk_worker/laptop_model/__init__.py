"""The laptop model's adapter: how it is made and merged, so that the base obeys wishes about form."""
