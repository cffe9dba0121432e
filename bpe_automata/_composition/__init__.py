"""Languages that are made of others.

language  what may be given for a language, and its automaton
joining   one after another, one of several, one again and again; special tokens between them
free      any text up to a trigger, or without some texts
tools     calls of functions, in the formats of models
described languages as data: what requests and the command line say
"""
