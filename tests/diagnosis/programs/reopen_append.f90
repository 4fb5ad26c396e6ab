! Opens the history file for each time step and appends one line.
program reopen_append
  implicit none
  integer :: n, i
  n = read_size()
  if (is_repaired()) open (10, file="history.txt", position="append")
  do i = 1, n
    if (.not. is_repaired()) open (10, file="history.txt", position="append")
    write (10, '(a, i0)') "time step ", i
    if (.not. is_repaired()) close (10)
  end do
  if (is_repaired()) close (10)
  call compute(1000)
  print '(i0, a)', n, " steps"
contains
  include "work.inc"
end program
