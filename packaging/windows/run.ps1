# What `make run` is on Linux and macOS: install what is missing, start Inglenook, open the browser.
#   powershell -ExecutionPolicy Bypass -File packaging\windows\run.ps1
$ErrorActionPreference = "Stop"
Set-Location (Join-Path $PSScriptRoot "..\..")

$python = $null
foreach ($version in "3.13", "3.12", "3.11") {
    if (Get-Command py -ErrorAction SilentlyContinue) {
        & py "-$version" -c "import venv" 2>$null
        if ($LASTEXITCODE -eq 0) { $python = @("py", "-$version"); break }
    }
}
if (-not $python) {
    Write-Host "Inglenook needs Python 3.11 or newer and found none: install it with 'winget install Python.Python.3.13', then run this again."
    exit 1
}

& $python[0] $python[1] packaging\install.py
if ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }
& .venv\Scripts\inglenook.exe run @args
exit $LASTEXITCODE
