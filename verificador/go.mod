module verificador

go 1.26.0
