! Reads records of a direct-access file in random order instead of once as a whole.
program direct_random
  implicit none
  integer, parameter :: record = 64
  integer :: n, i, number, total, bytes
  character(len=record) :: one
  character(len=record), allocatable :: all(:)
  integer(8) :: sum
  n = read_size()
  inquire (file="catalogue.bin", size=bytes)
  total = bytes / record
  sum = 0
  if (is_repaired()) then
    allocate (all(total))
    open (10, file="catalogue.bin", access="stream", form="unformatted", action="read")
    read (10) all
  else
    open (10, file="catalogue.bin", access="direct", recl=record, action="read")
  end if
  do i = 1, n
    number = 1 + int(mod(int(i, 8) * 2654435761_8, int(total, 8)))
    if (is_repaired()) then
      one = all(number)
    else
      read (10, rec=number) one
    end if
    sum = sum + ichar(one(1:1))
  end do
  close (10)
  call compute(1000)
  print '(i0, a, i0)', n, " records, sum ", sum
contains
  include "work.inc"
end program
