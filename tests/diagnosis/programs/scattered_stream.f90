! Writes the values of a field at their places in a stream file, in the order of an old numbering.
program scattered_stream
  implicit none
  integer :: n, i, place
  real(8), allocatable :: field(:)
  n = read_size()
  allocate (field(n))
  do i = 1, n
    place = 1 + int(mod(int(i, 8) * 7919_8, int(n, 8)))
    field(place) = place
  end do
  open (10, file="field.bin", access="stream", form="unformatted", status="replace")
  if (is_repaired()) then
    write (10) field
  else
    do i = 1, n
      place = 1 + int(mod(int(i, 8) * 7919_8, int(n, 8)))
      write (10, pos=8_8 * (place - 1) + 1) field(place)
    end do
  end if
  close (10)
  call compute(1000)
  print '(i0, a)', n, " values"
contains
  include "work.inc"
end program
