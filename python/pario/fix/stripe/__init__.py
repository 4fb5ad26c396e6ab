"""Where the bytes of files lie, and how to have them lie elsewhere.

``layout`` asks and sets the stripes of files and directories, ``policy`` says what new files should
get, ``restripe`` moves a file to other stripes, ``filesystem`` tells what is known of a file
system, ``commands`` says the same in the words of other tools.
"""
