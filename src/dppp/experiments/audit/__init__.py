"""Audits: attacks and counts that try to refute what a certificate says (`dppp audit`)."""
