"""Languages that are made of others.

joining   one after another, one of several, one again and again; special tokens between them
free      any text up to a trigger, or without some texts
"""
