"""killpoint.dev/v1alpha1: the specification and the status, as pydantic models.

The only place of defaults and limits. What stands here becomes a structural schema (CustomResourceDefinition), so every
field has one type, every list, map and string a limit, and every default is a plain value. Must hold no behaviour.
"""
