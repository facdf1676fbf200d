; Windows' installer, for one user and without an administrator: packaging/windows_package.py runs
;   iscc /DVersion=... /DFrozen=FOLDER /DOutput=FOLDER [/Ssign=COMMAND /DSigned] inglenook.iss
#ifndef Version
  #error Version, Frozen and Output are given on the command line.
#endif

[Setup]
AppId={{5C0F9C1E-6B7C-4C55-9B0B-3A5E8F3F7D21}
AppName=Inglenook
AppVersion={#Version}
AppPublisher=The Inglenook contributors
DefaultDirName={localappdata}\Programs\Inglenook
DisableProgramGroupPage=yes
DisableDirPage=auto
PrivilegesRequired=lowest
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
MinVersion=10.0.17763
CloseApplications=yes
RestartApplications=no
Compression=lzma2
SolidCompression=yes
OutputDir={#Output}
OutputBaseFilename=inglenook-{#Version}-windows-x86_64-setup
UninstallDisplayIcon={app}\inglenook.exe
WizardStyle=modern
#ifdef Signed
SignTool=sign
SignedUninstaller=yes
#endif

[Languages]
Name: "en"; MessagesFile: "compiler:Default.isl"
Name: "de"; MessagesFile: "compiler:Languages\German.isl"

[CustomMessages]
en.DeleteConversations=Delete your conversations, models and settings too? They stay if you choose No.
de.DeleteConversations=Auch Ihre Unterhaltungen, Modelle und Einstellungen löschen? Bei Nein bleiben sie erhalten.

; What an older version had and this one has not.
[InstallDelete]
Type: filesandordirs; Name: "{app}\_internal"

[Files]
Source: "{#Frozen}\*"; DestDir: "{app}"; Flags: ignoreversion recursesubdirs createallsubdirs

[Icons]
Name: "{userprograms}\Inglenook"; Filename: "{app}\inglenook.exe"

[Run]
Filename: "{app}\inglenook.exe"; Description: "{cm:LaunchProgram,Inglenook}"; Flags: nowait postinstall skipifsilent

[Code]
procedure CurUninstallStepChanged(Step: TUninstallStep);
begin
  if (Step = usPostUninstall) and not UninstallSilent then
    if MsgBox(CustomMessage('DeleteConversations'), mbConfirmation, MB_YESNO or MB_DEFBUTTON2) = IDYES then
      DelTree(ExpandConstant('{localappdata}\inglenook'), True, True, True);
end;
