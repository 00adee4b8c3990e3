"""Every way to make an unstable mean update stable, with its price: one cure, one file.

A cure whose parameter belongs to a registered law is made from the law (`laws`). The others have a
file of their own, named like the cure: their closed forms need no learner.
"""
