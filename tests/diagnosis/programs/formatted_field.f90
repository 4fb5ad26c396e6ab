! Writes a field of temperatures as formatted text.
program formatted_field
  implicit none
  integer :: n, i
  real(8), allocatable :: field(:)
  n = read_size()
  allocate (field(n))
  field = [(1d0 / i, i = 1, n)]
  if (is_repaired()) then
    open (10, file="field.bin", access="stream", form="unformatted", status="replace")
    write (10) field
  else
    open (10, file="field.txt", status="replace")
    do i = 1, n
      write (10, '(es24.16)') field(i)
    end do
  end if
  close (10)
  call compute(1000)
  print '(i0, a)', n, " values"
contains
  include "work.inc"
end program
