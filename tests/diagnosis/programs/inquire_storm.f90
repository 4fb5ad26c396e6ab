! Asks in each iteration whether the user has created a stop file.
program inquire_storm
  implicit none
  integer :: n, i, every, done
  logical :: stopped
  n = read_size()
  every = 1
  if (is_repaired()) every = n / 20 + 1
  done = 0
  do i = 1, n
    stopped = .false.
    if (mod(i, every) == 0) inquire (file="stop", exist=stopped)
    if (stopped) exit
    done = done + 1
  end do
  call compute(1000)
  print '(i0, a)', done, " iterations"
contains
  include "work.inc"
end program
