"""Stripes of files: query, choose, set and change them.

``layout`` queries and sets the stripes of files and directories, ``policy`` chooses those of new
files, ``restripe`` moves a file to other stripes, ``filesystem`` lists facts about a file system,
and ``commands`` writes equivalent command lines for the file system's own tools.
"""
