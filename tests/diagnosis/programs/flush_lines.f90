! Flushes the unit after each line of a convergence history.
program flush_lines
  implicit none
  integer :: n, i
  n = read_size()
  open (10, file="convergence.txt", status="replace")
  do i = 1, n
    write (10, '(a, i0)') "residual of iteration ", i
    if (.not. is_repaired()) flush (10)
  end do
  close (10)
  call compute(1000)
  print '(i0, a)', n, " iterations"
contains
  include "work.inc"
end program
